# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# A convolution runs for the first time in the capture: PyTorch creates the handle of cuDNN.
# doctor: culprit R42 cudaFree
import torch

torch.backends.cudnn.benchmark = True
x = torch.ones(8, 3, 64, 64, device="cuda")
convolution = torch.nn.Conv2d(3, 16, 3).cuda()
graph = torch.cuda.CUDAGraph()

with torch.cuda.graph(graph):
    y = convolution(x)  # culprit
