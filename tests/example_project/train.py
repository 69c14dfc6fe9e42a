"""Train the classifier: python train.py --epochs 2"""

import argparse

import torch
import torch.nn.functional as F
from torch.backends import cudnn

from classifier import Classifier, seed_everything
from classifier.checkpoint import resume, save
from classifier.data import make_loader


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="data")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1234)
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--resume", action="store_true")
    return parser.parse_args(arguments)


def train_epoch(model, loader, optimizer, device):
    model.train()
    total = 0.0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
    return total / len(loader.dataset)


def main(arguments=None):
    args = parse(arguments)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    cudnn.benchmark = True
    model = Classifier().to(device)
    seed_everything(args.seed)
    loader = make_loader(args.data, args.batch_size, args.workers)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    first = resume(args.checkpoint, model, optimizer) if args.resume else 0
    for epoch in range(first, args.epochs):
        loss = train_epoch(model, loader, optimizer, device)
        print(f"epoch {epoch}: loss {loss:.6f}")
        save(args.checkpoint, model, optimizer, epoch)


if __name__ == "__main__":
    main()
