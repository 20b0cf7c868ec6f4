"""Nets of text and sound, and two that write text: one step with the keys and values of what was said before."""
import torch
import transformers

import architectures

PAST = 256


class Tagger(torch.nn.Module):
    """Two bidirectional LSTM layers over word vectors, and a score for each of 32 tags."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(20000, 256)
        self.lstm = torch.nn.LSTM(256, 256, num_layers=2, bidirectional=True, batch_first=True)
        self.output = torch.nn.Linear(512, 32)

    def forward(self, input_ids):
        return self.output(self.lstm(self.embedding(input_ids))[0])


class DecodeStep(torch.nn.Module):
    """One token, with the keys and values of those before it; gives logits and the longer keys and values."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, input_ids, position_ids, *past):
        cache = transformers.DynamicCache()
        for layer in range(len(past) // 2):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        out = self.net(input_ids=input_ids, position_ids=position_ids, past_key_values=cache, use_cache=True)
        present = []
        for layer in out.past_key_values.layers:
            present += [layer.keys, layer.values]
        return out.logits, *present


def decode_step(net, seed, layers, heads, width):
    """`heads` are those of keys and values."""
    net = DecodeStep(net)
    architectures.set_weights(net, seed)
    generator = architectures.seeded(seed)
    sample = architectures.Sample(net, {"input_ids": torch.tensor([[1234]]), "position_ids": torch.tensor([[PAST]])}, ["logits"])
    for layer in range(layers):
        for part in ("key", "value"):
            name = f"past_key_values.{layer}.{part}"
            sample.inputs[name] = torch.randn((1, heads, PAST, width), generator=generator)
            sample.axes[name] = {2: "past_sequence"}
            sample.outputs.append(f"present.{layer}.{part}")
    return sample


def bert_base():
    mask = torch.ones((1, 128), dtype=torch.int64)
    mask[:, 120:] = 0
    inputs = {"input_ids": architectures.tokens(128, 30000, 5), "attention_mask": mask,
              "token_type_ids": (torch.arange(128)[None] >= 64).long()}
    return architectures.language(transformers.BertModel(transformers.BertConfig()), 5, inputs, ("last_hidden_state", "pooler_output"))


def t5_small_encoder():
    mask = torch.ones((1, 64), dtype=torch.int64)
    mask[:, 60:] = 0
    inputs = {"input_ids": architectures.tokens(64, 32000, 11), "attention_mask": mask}
    sample = architectures.language(transformers.T5EncoderModel(transformers.T5Config()), 11, inputs, ("last_hidden_state",))
    with torch.no_grad():  # T5 does not scale its scores: the weights of its queries do.
        for name, parameter in sample.net.named_parameters():
            if name.endswith(".q.weight"):
                parameter *= 64 ** -0.5
    return sample


def clip_vit_b32_text():
    ids = architectures.tokens(77, 49000, 12)
    ids[:, 70:] = 49407  # The end of the text, and padding.
    mask = (torch.arange(77)[None] <= 70).long()
    net = transformers.CLIPTextModelWithProjection(transformers.CLIPTextConfig(eos_token_id=49407))
    sample = architectures.language(net, 12, {"input_ids": ids, "attention_mask": mask}, ("text_embeds", "last_hidden_state"))
    sample.axes = {name: {0: "batch"} for name in sample.inputs}  # CLIP always has 77.
    return sample


def whisper_tiny_encoder():
    config = transformers.WhisperConfig(d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536)
    generator = architectures.seeded(13)
    inputs = {"input_features": torch.randn((1, 80, 3000), generator=generator) * 0.5}
    sample = architectures.language(transformers.WhisperModel(config).encoder, 13, inputs, ("last_hidden_state",))
    sample.axes = {}  # Always 30 seconds.
    return sample


def wav2vec2_base():
    net = transformers.Wav2Vec2Model(transformers.Wav2Vec2Config())
    convolution = net.encoder.pos_conv_embed.conv
    torch.nn.utils.parametrize.remove_parametrizations(convolution, "weight")  # As one weight, which is what is run.
    generator = architectures.seeded(14)
    time = torch.arange(16000) / 16000
    tone = sum(torch.sin(2 * torch.pi * pitch * time) for pitch in (220, 450, 1300)) / 3
    sample = architectures.language(net, 14, {"input_values": (tone + 0.3 * torch.randn(16000, generator=generator))[None]},
                                    ("last_hidden_state",))
    sample.axes = {"input_values": {1: "samples"}}
    return sample


def bilstm():
    net = Tagger()
    architectures.set_weights(net, 15)
    return architectures.Sample(net, {"input_ids": architectures.tokens(64, 20000, 15)}, ["scores"])


def gpt2():
    return decode_step(transformers.GPT2LMHeadModel(transformers.GPT2Config()), 6, 12, 12, 64)


def llama_decode():
    """125 million parameters: 12 layers of width 768, 12 heads over 4 of keys and values."""
    config = transformers.LlamaConfig(vocab_size=32000, hidden_size=768, intermediate_size=2048, num_hidden_layers=12, num_attention_heads=12,
                                      num_key_value_heads=4, max_position_embeddings=2048)
    return decode_step(transformers.LlamaForCausalLM(config), 16, 12, 4, 64)


MODELS = {"bert_base": bert_base, "t5_small_encoder": t5_small_encoder, "clip_vit_b32_text": clip_vit_b32_text,
          "whisper_tiny_encoder": whisper_tiny_encoder, "wav2vec2_base": wav2vec2_base, "bilstm": bilstm, "gpt2": gpt2,
          "llama_decode": llama_decode}
