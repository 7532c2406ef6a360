# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""The exports of list.toml: small networks of torchvision, of transformers and of our own, with seeded random weights.

Each function of EXPORTS gives a network and how torch.onnx exports it. `exports.py NAME FILE` writes one. The list pins
the packages: another version of an exporter writes other nodes.
"""

import dataclasses
import sys
import warnings

import torch
import torchvision.models as vision
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

EXPORTS = {}
# The TorchScript exporter, which torch has kept beside the one of today.
SCRIPT = {"dynamo": False, "opset_version": 17}


@dataclasses.dataclass
class Export:
    """A network, inputs to trace it with, the names of its inputs and outputs, and options of torch.onnx.export."""

    network: nn.Module
    arguments: tuple
    inputs: list
    outputs: list = dataclasses.field(default_factory=lambda: ["y"])
    options: dict = dataclasses.field(default_factory=dict)


def export(function):
    EXPORTS[function.__name__] = function
    return function


def of_image(network, *shape, **options):
    return Export(network, (torch.randn(shape or (1, 3, 64, 64)),), ["x"], options=options)


def tokens(*shape):
    return torch.randint(0, 200, shape)


class Only(nn.Module):
    """A network of transformers, of whose results one is the output."""

    def __init__(self, network, names, result):
        super().__init__()
        self.network, self.names, self.result = network, names, result

    def forward(self, *arguments):
        return self.network(**dict(zip(self.names, arguments)))[self.result]


def lively(network):
    """With weights that keep a signal's size: with those of some networks, no input changes an output."""
    for layer in network.modules():
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(layer.weight)
    return network


# --- torchvision ---


@export
def resnet18():
    return of_image(vision.resnet18())


@export
def resnet18_dynbatch():
    return of_image(vision.resnet18(), 2, 3, 64, 64, dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=64)},))


@export
def resnet18_fp16():
    return Export(vision.resnet18().half(), (torch.randn(1, 3, 64, 64).half(),), ["x"])


@export
def mobilenetv3():
    return of_image(vision.mobilenet_v3_small())


@export
def efficientnet_b0():
    return of_image(vision.efficientnet_b0())


def vit():
    network = vision.VisionTransformer(64, 16, 3, 3, 96, 192, num_classes=10)
    nn.init.normal_(network.heads.head.weight)  # torchvision's are zero, and so is each output
    return network


@export
def vit_tiny():
    return of_image(vit())


@export
def vit_tiny_script():
    return of_image(vit(), **SCRIPT)


@export
def convnext_mini():
    blocks = [vision.convnext.CNBlockConfig(16, 32, 1), vision.convnext.CNBlockConfig(32, None, 1)]
    return of_image(vision.ConvNeXt(blocks, num_classes=10))


@export
def swin_mini():
    return of_image(vision.SwinTransformer([4, 4], 24, [2, 2], [2, 2], [4, 4], num_classes=10), 1, 3, 32, 32)


@export
def lraspp():
    network = vision.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None)
    return of_image(Only(network, ["input"], "out"))


@export
def densenet121():
    return of_image(vision.densenet121())


@export
def squeezenet1_1():
    return of_image(vision.squeezenet1_1())


@export
def shufflenet_v2():
    return of_image(vision.shufflenet_v2_x0_5())


@export
def googlenet():
    return of_image(vision.googlenet(weights=None, aux_logits=False, init_weights=False))  # else the signal dies out


@export
def regnet_y():
    return of_image(vision.regnet_y_400mf())


@export
def deeplabv3():
    network = vision.segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None)
    return of_image(lively(Only(network, ["x"], "out")))


@export
def r3d_18():
    return of_image(vision.video.r3d_18(), 1, 3, 4, 32, 32)


# --- Our own ---


class Tagger(nn.Module):
    """An embedding, a recurrent layer of two directions, and a label for each token."""

    def __init__(self, recurrent):
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.recurrent = recurrent(16, 32, 2, batch_first=True, bidirectional=True)
        self.labels = nn.Linear(64, 5)

    def forward(self, x):
        return self.labels(self.recurrent(self.embedding(x))[0]).softmax(-1)


@export
def lstm_tagger():
    return Export(Tagger(nn.LSTM), (torch.randint(0, 50, (1, 12)),), ["x"])


@export
def gru_tagger():
    return Export(Tagger(nn.GRU), (torch.randint(0, 50, (1, 12)),), ["x"])


class UNet(nn.Module):
    """As diffusion models have it: group normalization, SiLU, a half and back."""

    def __init__(self):
        super().__init__()
        self.enter = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.SiLU())
        self.down = nn.Sequential(nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.GroupNorm(4, 32), nn.SiLU())
        self.up = nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.leave = nn.Conv2d(32, 3, 3, padding=1)

    def forward(self, x):
        kept = self.enter(x)
        return self.leave(torch.cat([kept, self.up(self.down(kept))], 1))


@export
def unet():
    return of_image(UNet(), 1, 3, 32, 32)


# --- transformers ---


def bert(attention):
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(vocab_size=200, hidden_size=64, num_hidden_layers=2, num_attention_heads=2,
                        intermediate_size=128, max_position_embeddings=64)
    config._attn_implementation = attention
    return Only(BertForSequenceClassification(config), ["input_ids", "attention_mask"], "logits")


def bert_of(attention, batch=1, **options):
    arguments = (tokens(batch, 16), torch.ones(batch, 16, dtype=torch.long))
    return Export(bert(attention), arguments, ["ids", "mask"], options=options)


@export
def bert_tiny():
    return bert_of("eager")


@export
def bert_tiny_sdpa():
    return bert_of("sdpa")


@export
def bert_tiny_script():
    return bert_of("eager", **SCRIPT)


@export
def bert_tiny_dyn():
    length = {1: torch.export.Dim("seq", min=2, max=64)}
    return bert_of("sdpa", batch=2, dynamic_shapes=((length, length),))


class Gpt2Step(nn.Module):
    """One token of a GPT-2 of two layers. The cache is concatenated, or has a place for each token of the text."""

    def __init__(self, static):
        from transformers import GPT2Config, GPT2LMHeadModel

        super().__init__()
        self.model = GPT2LMHeadModel(GPT2Config(vocab_size=200, n_positions=64, n_embd=64, n_layer=2, n_head=2))
        self.static = static

    def attend(self, query, key, value, keys, values, position):
        if not self.static:
            keys, values = torch.cat([keys, key], 2), torch.cat([values, value], 2)
            return scaled_dot_product_attention(query, keys, values), keys, values
        keys, values = keys.index_copy(2, position[0], key), values.index_copy(2, position[0], value)
        mask = torch.arange(32)[None, None, None, :] <= position[:, None, None, :]
        return scaled_dot_product_attention(query, keys, values, attn_mask=mask), keys, values

    def forward(self, ids, position, *cache):
        network, out = self.model.transformer, []
        hidden = network.wte(ids) + network.wpe(position)
        for block, keys, values in zip(network.h, cache[0::2], cache[1::2]):
            query, key, value = (
                each.view(1, 1, 2, 32).transpose(1, 2) for each in block.attn.c_attn(block.ln_1(hidden)).split(64, 2)
            )
            found, keys, values = self.attend(query, key, value, keys, values, position)
            out += [keys, values]
            hidden = hidden + block.attn.c_proj(found.transpose(1, 2).reshape(1, 1, 64))
            hidden = hidden + block.mlp(block.ln_2(hidden))
        return (self.model.lm_head(network.ln_f(hidden)), *out)


def gpt2(static, length):
    cache = [torch.randn(1, 2, length, 32) for _ in range(4)]
    names = ["k0", "v0", "k1", "v1"]
    arguments = (tokens(1, 1), torch.tensor([[7]]), *cache)
    return Export(Gpt2Step(static), arguments, ["ids", "pos", *names], ["logits", *("o" + name for name in names)])


@export
def gpt2_step():
    return gpt2(static=False, length=7)


@export
def gpt2_static_cache():
    return gpt2(static=True, length=32)


@export
def llama_tiny_prefill():
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(vocab_size=200, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
                         num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64, use_cache=False)
    return Export(Only(LlamaModel(config), ["input_ids"], "last_hidden_state"), (tokens(1, 16),), ["ids"])


@export
def qwen2_tiny_prefill():
    from transformers import Qwen2Config, Qwen2Model

    config = Qwen2Config(vocab_size=200, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
                         num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64, use_cache=False)
    return Export(Only(Qwen2Model(config), ["input_ids"], "last_hidden_state"), (tokens(1, 16),), ["ids"])


@export
def distilbert_tiny():
    from transformers import DistilBertConfig, DistilBertModel

    config = DistilBertConfig(vocab_size=200, dim=64, n_layers=2, n_heads=2, hidden_dim=128, max_position_embeddings=64)
    network = Only(DistilBertModel(config), ["input_ids", "attention_mask"], "last_hidden_state")
    return Export(network, (tokens(1, 16), torch.ones(1, 16, dtype=torch.long)), ["ids", "mask"])


@export
def t5_encoder_tiny():
    from transformers import T5Config, T5EncoderModel

    config = T5Config(vocab_size=200, d_model=64, d_kv=32, d_ff=128, num_layers=2, num_heads=2)
    config._attn_implementation = "eager"  # torch 2.15 does not export SDPA with a bias here
    return Export(Only(T5EncoderModel(config), ["input_ids"], "last_hidden_state"), (tokens(1, 16),), ["ids"])


@export
def whisper_encoder_tiny():
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = WhisperConfig(num_mel_bins=16, d_model=64, encoder_layers=2, encoder_attention_heads=2,
                           encoder_ffn_dim=128, max_source_positions=50)
    network = Only(WhisperEncoder(config), ["input_features"], "last_hidden_state")
    return Export(network, (torch.randn(1, 16, 100),), ["features"])


@export
def clip_vision_tiny():
    from transformers import CLIPVisionConfig, CLIPVisionModel

    config = CLIPVisionConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
                              image_size=64, patch_size=16)
    return of_image(Only(CLIPVisionModel(config), ["pixel_values"], "pooler_output"))


@export
def segformer_tiny():
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    config = SegformerConfig(depths=[1, 1, 1, 1], hidden_sizes=[16, 32, 48, 64], decoder_hidden_size=32, num_labels=5)
    return of_image(Only(SegformerForSemanticSegmentation(config), ["pixel_values"], "logits"))


@export
def wav2vec2_tiny():
    from transformers import Wav2Vec2Config, Wav2Vec2Model

    config = Wav2Vec2Config(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
                            conv_dim=(16, 16, 16), conv_stride=(5, 2, 2), conv_kernel=(10, 3, 3),
                            num_feat_extract_layers=3, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4)
    network = Only(Wav2Vec2Model(config), ["input_values"], "last_hidden_state")
    return Export(network, (torch.randn(1, 1600),), ["audio"])


@export
def mobilevit_tiny():
    from transformers import MobileViTConfig, MobileViTModel

    config = MobileViTConfig(image_size=64, hidden_sizes=[16, 24, 32], neck_hidden_sizes=[8, 8, 16, 16, 24, 32, 64],
                             num_attention_heads=2)
    return of_image(lively(Only(MobileViTModel(config), ["pixel_values"], "pooler_output")))


def write(name, path):
    """Exports one network into a file."""
    torch.manual_seed(0)
    made = EXPORTS[name]()
    options = {"dynamo": True, **made.options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(made.network.eval(), made.arguments, path, input_names=made.inputs,
                          output_names=made.outputs, external_data=False, **options)


if __name__ == "__main__":
    write(*sys.argv[1:])
