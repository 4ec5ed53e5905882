// Sweeps of the Gibbs sampler for the hidden units of a sigmoid belief network, given the visible.
//
// The model is v_d ~ Bern(σ(a_d)), a = W h + c, h_j ~ Bern(σ(b_j)).  With the other units given,
//
//     log-odds(h_j = 1) = b_j + Σ_d v_d W_dj - Σ_d [softplus(a_d + W_dj) - softplus(a_d)],   h_j = 0 in a.
//
// The first two terms are a matrix product, which comes as `drive`.  The last costs two softplus for
// every image, unit and pixel if written so.  Instead, with p = σ(a), q = σ(-a) and E = exp(W),
//
//     softplus(a + W) - softplus(a) = log(q + p E),
//     softplus(a) - softplus(a - W) = W - log(p + q E),
//
// and a sum of logarithms is the logarithm of a product: one multiplication and one fused
// multiply-add an entry.  Nothing cancels, as all terms are positive, and each factor lies between
// 1 and E: products of a few stay in range for weights up to REACH.  Larger ones, as the jumps of
// α-stable noise leave a few, have E = 1 in the table and are taken one by one.
//
// Layout
//   Rows of W by hidden unit, padded to a multiple of 32 pixels with W = 0, whose factors are 1.
//   p and q are made anew from a before each sweep, so that rounding does not build up.
//   Two vectors of factors are multiplied before their product joins the others, and as many pairs of
//   them before it is normalised as the unit's largest weight allows.
//   IMAGES images go through a unit together, so that E is read once for all of them.
//   Random words are numbered by key, image, sweep and unit, so that threads change nothing.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "checks.h"
#include "machine.h"
#include "philox.h"
#include "xla/ffi/api/ffi.h"

namespace {

namespace ffi = xla::ffi;

constexpr int PAD = 32;            // pixels: two vectors, as factors are multiplied in pairs
constexpr int IMAGES = 4;          // that share a reading of E
constexpr float REACH = 10;        // of weights; larger ones are taken one by one
constexpr float RANGE = 80;        // exp of it, and a mantissa more, is within the range of numbers
constexpr int MOST_PAIRS = 32;     // of factors between two normalisations
constexpr float LARGEST_EXP = 87;  // exp(-87) is a normal number
constexpr float FAR = 75;          // beyond it, a step of REACH may take σ(a) to where numbers end
constexpr double MOST = 600;         // exp of it is a number of double precision
constexpr double LOG_2 = 0.6931471805599453;

// A weight beyond reach, and exp of it, which is of use up to MOST.
struct Beyond {
  int32_t pixel;
  double exponential;
};

struct Network {
  int64_t num_hidden, width, padding;  // width: pixels, with the padding
  const float *weights, *exponentials;  // of unit j from j · width on
  const float* sums;                    // of each unit: Σ W over weights within reach,
  const int32_t* pairs;                 // and how many pairs of factors may be multiplied unseen
  const std::vector<Beyond>* beyond;    // of each unit: the others
  const float* bias;                    // c, padded
};

// What belongs to one image: a, σ(a), σ(-a).
struct Image {
  float *a, *p, *q;
};

struct Work {
  Network net;
  Key key;
  int64_t num_sweeps;
  const float* drive;
  uint8_t* hidden;
  float *before, *after;  // Σ softplus(a) of each image
};

// Memory for numbers that vectors are read from.
struct Room {
  std::unique_ptr<float[]> memory;
  float* begin;
  explicit Room(int64_t count) : memory(new float[size_t(count) + 16]()) {
    begin = memory.get() + (64 - reinterpret_cast<uintptr_t>(memory.get()) % 64) % 64 / sizeof(float);
  }
};

// Tables of a network: rows by hidden unit, padded.
struct Tables {
  Room weights, exponentials, sums, bias;
  std::vector<std::vector<Beyond>> beyond;
  std::vector<int32_t> pairs;
  int64_t num_visible, num_hidden, width;
  Tables(int64_t visible, int64_t hidden)
      : weights(hidden * padded(visible)), exponentials(hidden * padded(visible)), sums(hidden),
        bias(padded(visible)), beyond(size_t(hidden)), pairs(size_t(hidden)),
        num_visible(visible), num_hidden(hidden),
        width(padded(visible)) {}
  static int64_t padded(int64_t count) { return (count + PAD - 1) / PAD * PAD; }
  Network network() const {
    return {num_hidden, width, width - num_visible, weights.begin, exponentials.begin,
            sums.begin, pairs.data(), beyond.data(), bias.begin};
  }
};

}  // namespace

// The kernels, once for each instruction set.
#if LEVYMC_X86
#define LEVYMC_LANES 16
BEGIN_TARGET("avx2,fma,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl")
namespace avx512 {
#include "sweeps.h"
}
END_TARGET
#undef LEVYMC_LANES

#define LEVYMC_LANES 8
BEGIN_TARGET("avx2,fma,bmi,bmi2")
namespace avx2 {
#include "sweeps.h"
}
END_TARGET
#undef LEVYMC_LANES
#endif

#define LEVYMC_LANES 8
namespace portable {
#include "sweeps.h"
}

namespace {

void fill(Tables& tables, const float* weights, const float* bias) {
#if LEVYMC_X86
  if (instructions() == Instructions::AVX512) return avx512::fill(tables, weights, bias);
  if (instructions() == Instructions::AVX2) return avx2::fill(tables, weights, bias);
#endif
  portable::fill(tables, weights, bias);
}

void draw_images(const Work& work, int64_t first, int64_t last) {
#if LEVYMC_X86
  if (instructions() == Instructions::AVX512) return avx512::draw_images(work, first, last);
  if (instructions() == Instructions::AVX2) return avx2::draw_images(work, first, last);
#endif
  portable::draw_images(work, first, last);
}

ffi::Error sweeps(ffi::Buffer<ffi::F32> weights, ffi::Buffer<ffi::F32> bias, ffi::Buffer<ffi::F32> drive,
                  ffi::Buffer<ffi::U8> hidden, ffi::Buffer<ffi::U32> key, ffi::ResultBuffer<ffi::U8> drawn,
                  ffi::ResultBuffer<ffi::F32> before, ffi::ResultBuffer<ffi::F32> after,
                  int64_t num_sweeps, int64_t num_threads) {
  Checks checks;
  checks.axes("weights", weights, 2, 2);
  checks.axes("hidden", hidden, 2, 2);
  if (!checks) return checks.error();
  const int64_t num_visible = weights.dimensions()[0], num_hidden = weights.dimensions()[1];
  const int64_t num_images = hidden.dimensions()[0];
  checks.size("bias", bias, num_visible);
  checks.size("hidden", hidden, num_images * num_hidden);
  checks.size("drive", drive, num_images * num_hidden);
  checks.size("key", key, 2);
  checks.size("drawn", *drawn, num_images * num_hidden);
  checks.size("before", *before, num_images);
  checks.size("after", *after, num_images);
  checks.within("num_sweeps", num_sweeps, 0, std::numeric_limits<uint32_t>::max());
  checks.within("num_threads", num_threads, 1, 1 << 16);
  if (!checks) return checks.error();
  if (drawn->typed_data() != hidden.typed_data())
    std::memcpy(drawn->typed_data(), hidden.typed_data(), hidden.size_bytes());
  Tables tables(num_visible, num_hidden);
  fill(tables, weights.typed_data(), bias.typed_data());
  const Work work{tables.network(), {{key.typed_data()[0], key.typed_data()[1]}}, num_sweeps,
                  drive.typed_data(), drawn->typed_data(), before->typed_data(), after->typed_data()};
  std::vector<std::thread> threads;
  int64_t first = 0;
  for (int64_t t = 1; t < num_threads; ++t) {
    const int64_t last = num_images * t / num_threads / IMAGES * IMAGES;
    threads.emplace_back([&work, first, last] { draw_images(work, first, last); });
    first = last;
  }
  draw_images(work, first, num_images);
  for (auto& thread : threads) thread.join();
  return ffi::Error::Success();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(levymc_belief_sweeps, sweeps,
                              xla::ffi::Ffi::Bind()
                                  .Arg<xla::ffi::Buffer<xla::ffi::F32>>()
                                  .Arg<xla::ffi::Buffer<xla::ffi::F32>>()
                                  .Arg<xla::ffi::Buffer<xla::ffi::F32>>()
                                  .Arg<xla::ffi::Buffer<xla::ffi::U8>>()
                                  .Arg<xla::ffi::Buffer<xla::ffi::U32>>()
                                  .Ret<xla::ffi::Buffer<xla::ffi::U8>>()
                                  .Ret<xla::ffi::Buffer<xla::ffi::F32>>()
                                  .Ret<xla::ffi::Buffer<xla::ffi::F32>>()
                                  .Attr<int64_t>("num_sweeps")
                                  .Attr<int64_t>("num_threads"));
