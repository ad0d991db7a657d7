# transformers: a two-layer BERT and GPT-2 trained for a step, and text generated
import torch
from transformers import BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel

small = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 50}
bert = BertForSequenceClassification(BertConfig(**small))
ids = torch.randint(0, 50, (2, 7))
bert(input_ids=ids, labels=torch.tensor([0, 1])).loss.backward()
gpt = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=49))
optimizer = torch.optim.AdamW(gpt.parameters(), lr=1e-3)
gpt(input_ids=ids, labels=ids).loss.backward()
optimizer.step()
assert gpt.eval().generate(ids, max_new_tokens=3, min_new_tokens=3, do_sample=False).shape == (2, 10)
