"""The acquisition policy: from history and edge probabilities to an experiment."""
