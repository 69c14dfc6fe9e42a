import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

# Memory that nobody has written yet is read without effect: permutations of packed sequences, a result that masks
# fill part by part, a buffer of which only the written places are used.
torch.manual_seed(0)
embedding = nn.Embedding(50, 8, padding_idx=0)
lstm = nn.LSTM(8, 12, bidirectional=True, batch_first=True)
head = nn.Linear(24, 3)
model = nn.ModuleList([embedding, lstm, head])
opt = torch.optim.Adam(model.parameters(), lr=0.01)
tokens = [torch.randint(1, 50, (n,)) for n in (5, 9, 3, 7)]
tags = torch.tensor([0, 1, 2, 1])
memory = torch.empty(64, 24)
for step in range(3):
    lengths = torch.tensor([len(t) for t in tokens])
    packed = pack_padded_sequence(
        embedding(pad_sequence(tokens, batch_first=True)), lengths, batch_first=True, enforce_sorted=False
    )
    out = pad_packed_sequence(lstm(packed)[0], batch_first=True)[0].sum(1)
    memory[torch.arange(4) + 4 * step] = out.detach()
    seen = memory[torch.randint(0, 4 * (step + 1), (8,))]
    mixed = torch.empty_like(out)
    even = lengths > 4
    mixed[even] = out[even]
    mixed[~even] = -out[~even]
    loss = nn.functional.cross_entropy(head(mixed), tags) + head(seen).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
