# transformers: a Trainer that trains BERT and GPT-2, saves, and goes on from a checkpoint to the same weights
import tempfile

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainingArguments,
    set_seed,
)

ids = torch.randint(0, 50, (24, 7))


def bert():
    small = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    return BertForSequenceClassification(BertConfig(vocab_size=50, **small))


def gpt():
    return GPT2LMHeadModel(GPT2Config(vocab_size=50, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=49))


for make, labels in ((bert, ids.sum(1) % 2), (gpt, ids)):
    data = [{"input_ids": row, "labels": label} for row, label in zip(ids, labels, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        options = {"num_train_epochs": 2, "per_device_train_batch_size": 4, "save_steps": 4, "use_cpu": True}
        arguments = TrainingArguments(folder, learning_rate=1e-2, report_to=[], disable_tqdm=True, **options)
        weights = []
        for start in (None, folder + "/checkpoint-8"):
            set_seed(1)
            trainer = Trainer(make(), arguments, train_dataset=data, eval_dataset=data)
            trainer.train(resume_from_checkpoint=start)
            assert trainer.state.global_step == 12
            assert trainer.evaluate()["eval_loss"] > 0
            weights.append(trainer.model.state_dict())
        assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
