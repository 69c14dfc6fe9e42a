import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 1))
compiled = torch.compile(model, backend="aot_eager")
opt = torch.optim.AdamW(model.parameters())
for step in range(3):
    loss = compiled(torch.randn(4, 8)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
