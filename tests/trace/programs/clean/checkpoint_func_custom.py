import torch
from torch.utils.checkpoint import checkpoint


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
params = dict(model.named_parameters())
for step in range(3):
    x = torch.randn(4, 8)
    y = checkpoint(model, x, use_reentrant=False)
    loss = Square.apply(y).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

    def loss_of(p, one):
        return torch.func.functional_call(model.eval(), p, (one,)).sum()

    grads = torch.func.vmap(torch.func.grad(loss_of), (None, 0))(params, x)
    print(sum(g.sum() for g in grads.values()))
    model.train()
