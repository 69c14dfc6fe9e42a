import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(8, 1)  # diverges: rng
opt = torch.optim.AdamW(model.parameters())
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(16, 8)), batch_size=4)
model, opt, data = accelerator.prepare(model, opt, data)
for (x,) in data:
    loss = model(x).pow(2).mean()
    accelerator.backward(loss)
    opt.step()
    opt.zero_grad()
