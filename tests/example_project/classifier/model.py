"""The network."""

import torch.nn as nn
import torch.nn.functional as F


class Classifier(nn.Module):
    def __init__(self, classes=4, width=16):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.body = nn.Conv2d(width, width, 3, padding=1)
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = F.relu(self.stem(x))
        x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        x = F.relu(self.body(x))
        x = x.mean(dim=(2, 3))
        return self.head(self.dropout(x))
