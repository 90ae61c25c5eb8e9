/* The arithmetic of mlp.c in one precision: included with REAL, NAME, GEMM and EXP, LOG defined. */

static void NAME(set_input)(REAL* x, const uint8_t* pixels, int count) {
  for (int i = 0; i < count; ++i) x[i] = (REAL)pixels[i] / 255;
}

/* y = x W^T + b */
static void NAME(forward)(const REAL* x, const REAL* weight, const REAL* bias, REAL* y, int samples, int in,
                          int out, int relu) {
  for (int s = 0; s < samples; ++s) memcpy(y + (size_t)s * out, bias, (size_t)out * sizeof(REAL));
  GEMM(CblasRowMajor, CblasNoTrans, CblasTrans, samples, out, in, 1, x, in, weight, in, 1, y, out);
  if (!relu) return;
  for (size_t i = 0; i < (size_t)samples * out; ++i) y[i] = y[i] > 0 ? y[i] : 0;
}

/* Softmax of one sample's outputs z; delta = factor * (softmax - one-hot label). */
static void NAME(loss)(const REAL* z, int classes, int label, REAL factor, REAL* delta, mlp_score_t* score) {
  int best = 0;
  for (int c = 1; c < classes; ++c)
    if (z[c] > z[best]) best = c;
  REAL sum = 0;
  for (int c = 0; c < classes; ++c) sum += delta[c] = EXP(z[c] - z[best]); /* no overflow: at most 1 */
  for (int c = 0; c < classes; ++c) delta[c] = factor * (delta[c] / sum - (c == label ? 1 : 0));
  score->loss += LOG(sum) - (z[label] - z[best]);
  score->correct += best == label;
}

/* dW = delta^T x, db = sum of delta over the samples, both added to what is there if asked. */
static void NAME(weight_gradient)(const REAL* x, const REAL* delta, int samples, int in, int out,
                                  mlp_grad_t weight, mlp_grad_t bias) {
  GEMM(CblasRowMajor, CblasTrans, CblasNoTrans, out, in, samples, 1, delta, out, x, in, weight.add ? 1 : 0,
       weight.values, in);
  REAL* b = bias.values;
  if (!bias.add) memset(b, 0, (size_t)out * sizeof(REAL));
  for (int s = 0; s < samples; ++s)
    for (int j = 0; j < out; ++j) b[j] += delta[(size_t)s * out + j];
}

/* dx = delta W, 0 where relu cut x off. */
static void NAME(input_gradient)(const REAL* x, const REAL* weight, const REAL* delta, REAL* dx, int samples,
                                 int in, int out) {
  GEMM(CblasRowMajor, CblasNoTrans, CblasNoTrans, samples, in, out, 1, delta, out, weight, in, 0, dx, in);
  for (size_t i = 0; i < (size_t)samples * in; ++i) dx[i] = x[i] > 0 ? dx[i] : 0;
}
