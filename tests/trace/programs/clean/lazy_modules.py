"""Parameters that have no shape before the first call, moved and cast before it."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.LazyLinear(16), torch.nn.ReLU(), torch.nn.LazyBatchNorm1d(), torch.nn.LazyLinear(2))
model = model.to("cpu").double()
x = torch.randn(32, 8, dtype=torch.float64)
model(x)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(3):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
print(loss.item())
