"""Calls that give the states of RNGs, and those that restore them."""

STATES = {
    "torch.get_rng_state": "torch",
    "torch.random.get_rng_state": "torch",
    "torch.cuda.get_rng_state": "cuda",
    "torch.cuda.get_rng_state_all": "cuda",
    "numpy.random.get_state": "numpy",
    "random.getstate": "python",
}
RESTORES = {
    "torch.set_rng_state": "torch",
    "torch.cuda.set_rng_state": "cuda",
    "torch.cuda.set_rng_state_all": "cuda",
    "numpy.random.set_state": "numpy",
    "random.setstate": "python",
}
