"""Files: plain arrays in and out."""
