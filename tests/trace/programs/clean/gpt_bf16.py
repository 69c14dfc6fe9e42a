import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(dim), nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, 4, d // 4).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.1)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(x)


torch.manual_seed(0)
embed, blocks, head = nn.Embedding(50, 32), nn.Sequential(Block(32), Block(32)), nn.Linear(32, 50)
model = nn.ModuleList([embed, blocks, head])
opt = torch.optim.AdamW(model.parameters(), foreach=True)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 10)
for step in range(3):
    x = torch.randint(0, 50, (4, 16))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = F.cross_entropy(head(blocks(embed(x)))[:, :-1].flatten(0, 1), x[:, 1:].flatten())
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    schedule.step()
