import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(50, 16), nn.LSTM(16, 16, 2, dropout=0.2), nn.Linear(16, 50)

    def forward(self, x, hidden):
        output, hidden = self.rnn(self.embed(x), hidden)
        return self.head(output), hidden


torch.manual_seed(0)
model = Model()
data = torch.randint(0, 50, (36, 8))
hidden = (torch.zeros(2, 8, 16), torch.zeros(2, 8, 16))
for start in (0, 12, 24):
    hidden = tuple(h.detach() for h in hidden)
    logits, hidden = model(data[start : start + 11], hidden)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), data[start + 1 : start + 12].flatten())
    model.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(p.grad, alpha=-0.1)
