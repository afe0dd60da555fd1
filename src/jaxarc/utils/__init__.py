"""Host-side helpers of the environments: errors, files, pictures."""
