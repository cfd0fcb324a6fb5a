"""Fine-tunes a small Llama with LoRA on conversations, padded to the longest of a batch."""

import argparse

import torch
from peft import LoraConfig, get_peft_model
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
from transformers import LlamaConfig, LlamaForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

torch.manual_seed(0)
CUTOFF = 1024 if args.fixed else None

config = LlamaConfig(
    vocab_size=8192,
    hidden_size=512,
    intermediate_size=1408,
    num_hidden_layers=4,
    num_attention_heads=8,
    use_cache=False,
)
lora = LoraConfig(r=8, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"], task_type="CAUSAL_LM")
model = get_peft_model(LlamaForCausalLM(config).bfloat16(), lora).cuda()
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-4)

lengths = torch.randint(200, 500, (64,)).tolist()
lengths[21], lengths[50] = 6300, 5793
conversations = [torch.randint(config.vocab_size, (length,)) for length in lengths]


def collate(samples):
    input_ids = pad_sequence([sample[:CUTOFF] for sample in samples], batch_first=True)
    labels = pad_sequence([sample[:CUTOFF] for sample in samples], batch_first=True, padding_value=-100)
    return {"input_ids": input_ids, "labels": labels}


for batch in DataLoader(conversations, batch_size=4, collate_fn=collate):
    batch = {name: tensor.cuda() for name, tensor in batch.items()}
    loss = model(**batch).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"{batch['input_ids'].shape[1]} tokens: loss {loss.item():.4f}")
