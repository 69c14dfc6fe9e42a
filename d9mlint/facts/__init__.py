"""What a file says, without judgement: the facts and how they are extracted, cached and gathered."""
