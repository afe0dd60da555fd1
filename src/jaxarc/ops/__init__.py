"""What an agent can do to a grid."""
