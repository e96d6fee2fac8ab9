#define uint unsigned int
extern "C" __global__ void __launch_bounds__(256) total_kernel(float* A, float* B, float* partial, uint* tickets) {
  float mine[1];
  float other[1];
  __shared__ float warps[8];
  __shared__ uint last[1];
  uint ticket[1];
  mine[0] = A[((((int)blockIdx.x) * 256) + ((int)threadIdx.x))];
  #pragma unroll
  for (int step = 0; step < 5; ++step) {
    other[0] = __shfl_xor_sync((uint)4294967295, mine[0], (16 >> step), 32);
    mine[0] = (mine[0] + other[0]);
  }
  if ((((int)threadIdx.x) & 31) == 0) {
    warps[(((int)threadIdx.x) >> 5)] = mine[0];
  }
  __syncthreads();
  if (((int)threadIdx.x) == 0) {
    mine[0] = 0.000000e+00f;
    for (int w = 0; w < 8; ++w) {
      mine[0] = (mine[0] + warps[w]);
    }
    partial[((int)blockIdx.x)] = mine[0];
    __threadfence();
    ticket[0] = atomicAdd(&tickets[0], (uint)1);
    __threadfence();
    last[0] = ticket[0];
  }
  __syncthreads();
  if (last[0] == (uint)15) {
    if (((int)threadIdx.x) == 0) {
      mine[0] = 0.000000e+00f;
      for (int b = 0; b < 16; ++b) {
        mine[0] = (mine[0] + partial[b]);
      }
      B[0] = mine[0];
      tickets[0] = (uint)0;
    }
  }
}
