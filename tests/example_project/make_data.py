"""Write a small data set of images and masks as .npy files."""

from pathlib import Path

import numpy as np


def main(directory="data", count=64):
    rng = np.random.default_rng(0)
    for kind in ("images", "labels"):
        Path(directory, kind).mkdir(parents=True, exist_ok=True)
    for i in range(count):
        label = i % 4
        image = rng.normal(label, 1.0, size=(3, 16, 16)).astype(np.float32)
        np.save(Path(directory, "images", f"{i:03d}.npy"), image)
        np.save(Path(directory, "labels", f"{i:03d}.npy"), np.int64(label))


if __name__ == "__main__":
    main()
