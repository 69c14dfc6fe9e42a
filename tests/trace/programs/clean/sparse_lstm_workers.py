import torch
from torch import nn


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        for number in range(worker.id, 16, worker.num_workers):
            yield torch.randint(0, 50, (12,)), number % 3


def workers(index):
    torch.manual_seed(index)


torch.manual_seed(0)
embed = nn.EmbeddingBag(50, 16, sparse=True)
lstm, head = nn.LSTM(16, 16, num_layers=2, dropout=0.2, batch_first=True), nn.Linear(16, 3)
sparse = torch.optim.SparseAdam(embed.parameters())
dense = torch.optim.RMSprop([*lstm.parameters(), *head.parameters()])
schedule = torch.optim.lr_scheduler.OneCycleLR(dense, 0.01, total_steps=8)
loader = torch.utils.data.DataLoader(Stream(), batch_size=4, num_workers=2, worker_init_fn=workers)
for epoch in range(2):
    for tokens, label in loader:
        bags = torch.stack([embed(tokens[:, n : n + 3]) for n in range(0, 12, 3)], 1)
        packed = nn.utils.rnn.pack_padded_sequence(bags, torch.tensor([4, 3, 2, 1]), batch_first=True)
        _, (hidden, _) = lstm(packed)
        loss = nn.functional.cross_entropy(head(hidden[-1]), label)
        sparse.zero_grad()
        dense.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(lstm.parameters(), 0.5)
        sparse.step()
        dense.step()
        schedule.step()
