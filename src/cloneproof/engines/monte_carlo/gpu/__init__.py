"""The kernels on a GPU: the same decisions and the same bits as on a CPU.

`kernels` says which kernel takes a job, turns jobs into the records that it reads and says whether a card pays;
`launch` compiles and launches it with CuPy and makes outcomes of what it returns. The kernels themselves are one CUDA
C++ source, `source/kernels.cu`, which also compiles as plain C++.
"""
