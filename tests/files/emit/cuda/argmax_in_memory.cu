extern "C" __global__ void argmax_kernel(double* A, double* B, int* I) {
  B[((int)blockIdx.x)] = -__longlong_as_double(0x7ff0000000000000ll);
  I[((int)blockIdx.x)] = 2147483647;
  for (int l = 0; l < 7; ++l) {
    bool t = ((B[((int)blockIdx.x)] > A[((((int)blockIdx.x) * 7) + l)]) || ((I[((int)blockIdx.x)] < l) && (B[((int)blockIdx.x)] == A[((((int)blockIdx.x) * 7) + l)])));
    int I_new = (t ? I[((int)blockIdx.x)] : l);
    B[((int)blockIdx.x)] = (t ? B[((int)blockIdx.x)] : A[((((int)blockIdx.x) * 7) + l)]);
    I[((int)blockIdx.x)] = I_new;
  }
}
