"""DET5xx: what differs as several processes take part."""
