# Overrides for train.py: a small GPT on words.
out_dir = "out-words"
eval_interval = 2
eval_iters = 3
dataset = "words"
gradient_accumulation_steps = 4
batch_size = 8
block_size = 256
n_layer = 4
n_head = 8
n_embd = 512
max_iters = 50
dropout = 0.1
compile = True
