"""A llama with LoRA adapters."""

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, LlamaConfig


def make_policy(args):
    config = LlamaConfig(
        vocab_size=args.vocab_size,
        hidden_size=args.hidden_size,
        intermediate_size=4 * args.hidden_size,
        num_hidden_layers=args.layers,
        num_attention_heads=args.hidden_size // 64,
        num_key_value_heads=args.hidden_size // 128,
        max_position_embeddings=args.max_length,
        pad_token_id=0,
    )
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    adapters = LoraConfig(
        r=16,
        lora_alpha=32,
        lora_dropout=0.05,
        target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
        task_type="CAUSAL_LM",
    )
    model = get_peft_model(model, adapters)
    model.print_trainable_parameters()
    return model
