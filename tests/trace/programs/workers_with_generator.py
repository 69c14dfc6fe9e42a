import numpy as np, torch


def net():
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))


def fit(model, batches):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in batches:
        loss = ((model(x) - y) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()


class D(torch.utils.data.Dataset):
    def __init__(self):
        self.rng = np.random.default_rng()  # diverges: rng in main/fork 0

    def __len__(self):
        return 8

    def __getitem__(self, i):
        return torch.from_numpy(self.rng.random(8, dtype=np.float32)), torch.ones(1)


torch.manual_seed(0)
fit(net(), torch.utils.data.DataLoader(D(), batch_size=4, num_workers=2))
