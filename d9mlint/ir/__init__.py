"""The intermediate representation: what a file says, without judgement."""
