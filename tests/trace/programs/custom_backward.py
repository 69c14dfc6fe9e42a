import torch


class Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table, index):
        ctx.save_for_backward(index)
        ctx.size = table.numel()
        return table.take(index)

    @staticmethod
    def backward(ctx, grad):
        (index,) = ctx.saved_tensors
        return grad.new_zeros(ctx.size).put_(index, grad, accumulate=True), None  # diverges: op


torch.manual_seed(0)
torch.set_num_threads(2)
table = torch.nn.Parameter(torch.randn(1000))
index = torch.randint(0, 1000, (1 << 21,))
scale = torch.randn(1 << 21)
opt = torch.optim.SGD([table], lr=0.1)
for step in range(8):
    loss = (Lookup.apply(table, index) * scale).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
