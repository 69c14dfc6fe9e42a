"""What holds findings back: comments and baselines."""
