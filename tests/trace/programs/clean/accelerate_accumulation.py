import torch
from accelerate import Accelerator
from accelerate.utils import set_seed

set_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.1), torch.nn.Linear(16, 1))
opt = torch.optim.AdamW(model.parameters())
data = torch.utils.data.TensorDataset(torch.randn(32, 8))
loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
model, opt, loader = accelerator.prepare(model, opt, loader)
for epoch in range(2):
    for (x,) in loader:
        with accelerator.accumulate(model):
            loss = model(x).pow(2).mean()
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
