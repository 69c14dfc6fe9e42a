"""What everything else stands on: findings, errors, sources, notebooks."""
