import torch

torch.manual_seed(0)
words = ["the", "quick", "brown", "fox", "and", "the", "lazy", "dog"]
numbers = {word: number for number, word in enumerate(set(words))}  # diverges: input
ids = torch.tensor([numbers[word] for word in words])
table = torch.nn.Embedding(len(numbers), 4)
opt = torch.optim.SGD(table.parameters(), lr=0.1)
for step in range(2):
    opt.zero_grad()
    table(ids).pow(2).sum().backward()
    opt.step()
