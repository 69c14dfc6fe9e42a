import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(0)
config = BertConfig(
    vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
)
model = BertForSequenceClassification(config)
data = [{"input_ids": torch.arange(8) % 50, "labels": torch.tensor(i % 2)} for i in range(8)]
arguments = TrainingArguments(
    "out", max_steps=4, per_device_train_batch_size=4, use_cpu=True, report_to=[], save_steps=2, seed=0
)
Trainer(model, arguments, train_dataset=data, eval_dataset=data).train()
