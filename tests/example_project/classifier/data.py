"""The data set: images and labels that lie beside each other."""

import os

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, directory, augment=True):
        images = os.listdir(os.path.join(directory, "images"))
        labels = os.listdir(os.path.join(directory, "labels"))
        self.pairs = [
            (os.path.join(directory, "images", image), os.path.join(directory, "labels", label))
            for image, label in zip(images, labels)
        ]
        self.augment = augment

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        image, label = (np.load(path) for path in self.pairs[index])
        if self.augment:
            image = image + np.random.normal(0.0, 0.1, size=image.shape).astype(np.float32)
            if np.random.rand() < 0.5:
                image = image[:, :, ::-1].copy()
        return torch.from_numpy(image), int(label)


def make_loader(directory, batch_size, workers):
    return DataLoader(Images(directory), batch_size=batch_size, shuffle=True, num_workers=workers)
