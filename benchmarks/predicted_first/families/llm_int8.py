"""Adapters on an OPT-like decoder whose weights are in 8 bits, half precision beside them."""

import tempfile

import torch
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, OPTConfig

config = OPTConfig(
    vocab_size=50272, hidden_size=2048, ffn_dim=8192, num_hidden_layers=8, num_attention_heads=32, word_embed_proj_dim=2048
)
with tempfile.TemporaryDirectory() as folder:
    AutoModelForCausalLM.from_config(config, dtype=torch.float16).save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(
        folder, quantization_config=BitsAndBytesConfig(load_in_8bit=True), device_map={"": 0}, dtype=torch.float16
    )
model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules=["q_proj", "v_proj"], lora_dropout=0.05))
model.train()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-4)
for step in range(5):
    ids = torch.randint(5, 50000, (4, 512), device="cuda")
    with torch.autocast("cuda"):
        loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("loss", loss.item(), flush=True)
