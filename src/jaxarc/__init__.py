"""ARC puzzles as compiled reinforcement-learning environments."""
