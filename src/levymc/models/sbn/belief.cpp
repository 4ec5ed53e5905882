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
// 1 and E: products of eight stay in range for weights up to REACH.  Larger ones, as the jumps of
// α-stable noise leave a few, have E = 1 in the table and are taken one by one.
//
// Layout
//   Rows of W by hidden unit, padded to a multiple of 16 pixels with W = 0, whose factors are 1.
//   p and q are made anew from a before each sweep, so that rounding does not build up.
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

typedef float Eight __attribute__((vector_size(32), may_alias));
typedef int32_t EightBits __attribute__((vector_size(32), may_alias));
typedef float Four __attribute__((vector_size(16), may_alias));
typedef int32_t FourBits __attribute__((vector_size(16), may_alias));

constexpr int LANES = 8;
constexpr int PAD = 2 * LANES;     // factors are multiplied in pairs
constexpr int IMAGES = 4;          // that share a reading of E
constexpr int GROUP = 4;           // pairs of factors between two normalisations
constexpr float REACH = 10;        // (e^10)^8 < 2^127
constexpr float LARGEST_EXP = 87;  // exp(-87) is a normal number
constexpr float FAR = 75;          // beyond it, a step of REACH may take σ(a) to where numbers end
constexpr double MOST = 600;         // exp of it is a number of double precision
constexpr double LOG_2 = 0.6931471805599453;

INLINE EightBits bits_of(Eight x) { return reinterpret_cast<EightBits&>(x); }
INLINE Eight from_bits(EightBits x) { return reinterpret_cast<Eight&>(x); }
INLINE Eight all(float x) { return Eight{} + x; }
INLINE Eight choose(EightBits mask, Eight yes, Eight no) {
  return from_bits((mask & bits_of(yes)) | (~mask & bits_of(no)));
}

// exp of a number in [-87, 87], to 2e-7: x = n log 2 + r, and a polynomial in |r| ≤ log(2)/2.
INLINE Eight exponential(Eight x) {
  const Eight magic = all(12582912.0f);  // 1.5 · 2^23: adding it rounds
  const Eight shifted = x * 1.44269504f + magic;
  const Eight n = shifted - magic;
  const Eight r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Eight y = all(1.9875691500e-4f);
  y = y * r + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * (r * r) + r + 1.0f;
  return from_bits(bits_of(y) + ((bits_of(shifted) - bits_of(magic)) << 23));
}

// exp(-|a|), or exp(-87) where that is larger.
INLINE Eight exponential_of_size(Eight a) {
  const Eight size = from_bits(bits_of(a) & 0x7fffffff);
  return exponential(-choose(size > LARGEST_EXP, all(LARGEST_EXP), size));
}

// A product of positive numbers as mantissas in [1, 2) and the sum of their exponents.
struct Product {
  Eight mantissa = all(1.0f);
  EightBits exponent{};
  INLINE void normalise() {
    exponent += (bits_of(mantissa) >> 23) - 127;
    mantissa = from_bits((bits_of(mantissa) & 0x007fffff) | 0x3f800000);
  }
  INLINE double log() const {  // of a normalised one
    Four halves[2];
    FourBits powers[2];
    std::memcpy(halves, &mantissa, sizeof mantissa);
    std::memcpy(powers, &exponent, sizeof exponent);
    const Four m = halves[0] * halves[1];
    const FourBits n = powers[0] + powers[1];
    return std::log(double((m[0] * m[1]) * (m[2] * m[3]))) + LOG_2 * (n[0] + n[1] + n[2] + n[3]);
  }
};

// A weight beyond reach, and exp of it, which is of use up to MOST.
struct Beyond {
  int32_t pixel;
  double exponential;
};

struct Network {
  int64_t num_hidden, width, padding;  // width: pixels, with the padding
  const float *weights, *exponentials;  // of unit j from j · width on
  const float* sums;                    // of each unit: Σ W over weights within reach
  const std::vector<Beyond>* beyond;    // of each unit: the others
  const float* bias;                    // c, padded
};

// What belongs to one image: a, σ(a), σ(-a).
struct Image {
  float *a, *p, *q;
};

INLINE const Eight* eights(const float* x) { return reinterpret_cast<const Eight*>(x); }
INLINE Eight* eights(float* x) { return reinterpret_cast<Eight*>(x); }

// p and q of a; and Σ softplus(a) if asked for.
template <bool WITH_SUM>
INLINE double refresh(const Network& net, const Image& image) {
  Product product;
  Eight linear{};
  int64_t count = 0;
  for (int64_t i = 0; i < net.width / LANES; ++i) {
    const Eight a = eights(image.a)[i], e = exponential_of_size(a);
    const Eight large = 1.0f / (1.0f + e), small = e * large;
    const EightBits is_positive = a > 0.0f;
    eights(image.p)[i] = choose(is_positive, large, small);
    eights(image.q)[i] = choose(is_positive, small, large);
    if (!WITH_SUM) continue;
    linear += choose(is_positive, a, Eight{});
    product.mantissa *= 1.0f + e;
    if (++count % 64 == 0) product.normalise();
  }
  if (!WITH_SUM) return 0;
  product.normalise();
  double sum = product.log();
  for (int lane = 0; lane < LANES; ++lane) sum += double(linear[lane]);
  return sum - LOG_2 * double(net.padding);
}

// log Π (x + y E) for each image, with (x, y) = (q, p) where the unit is off and (p, q) where it is on.
template <int COUNT>
INLINE void log_products(const Network& net, int64_t unit, const Eight* const x[], const Eight* const y[],
                         double out[]) {
  const Eight* e = eights(net.exponentials + unit * net.width);
  const int64_t num_pairs = net.width / PAD;
  Product product[COUNT];
  for (int64_t first = 0; first < num_pairs; first += GROUP) {
    const int64_t last = std::min<int64_t>(first + GROUP, num_pairs);
    for (int64_t i = 2 * first; i < 2 * last; i += 2)
      for (int n = 0; n < COUNT; ++n)
        product[n].mantissa *= (x[n][i] + y[n][i] * e[i]) * (x[n][i + 1] + y[n][i + 1] * e[i + 1]);
    for (int n = 0; n < COUNT; ++n) product[n].normalise();
  }
  for (int n = 0; n < COUNT; ++n) out[n] = product[n].log();
}

INLINE double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }

// Σ softplus(a with the unit on) - softplus(a with it off) over the weights beyond reach.
INLINE double change_beyond(const Network& net, int64_t unit, const Image& image, bool is_on) {
  const float* w = net.weights + unit * net.width;
  double sum = 0;
  for (const auto [d, exponential] : net.beyond[unit]) {
    const double a = double(image.a[d]), weight = double(w[d]);
    const double p = double(image.p[d]), q = double(image.q[d]);
    if (std::fabs(a) > double(FAR) || std::fabs(weight) > MOST)
      sum += is_on ? softplus(a) - softplus(a - weight) : softplus(a + weight) - softplus(a);
    else
      sum += is_on ? weight - std::log(p + q * exponential) : std::log(q + p * exponential);
  }
  return sum;
}

// The same over all weights, for each image.
template <int COUNT>
INLINE void changes(const Network& net, int64_t unit, const Image images[], uint8_t* const hidden[],
                    double out[]) {
  const Eight *x[COUNT], *y[COUNT];
  for (int n = 0; n < COUNT; ++n) {
    const bool is_on = hidden[n][unit];
    x[n] = eights(is_on ? images[n].p : images[n].q);
    y[n] = eights(is_on ? images[n].q : images[n].p);
  }
  log_products<COUNT>(net, unit, x, y, out);
  for (int n = 0; n < COUNT; ++n) {
    if (hidden[n][unit]) out[n] = double(net.sums[unit]) - out[n];
    if (!net.beyond[unit].empty()) out[n] += change_beyond(net, unit, images[n], hidden[n][unit]);
  }
}

// Turn a unit on or off.  σ(a + W) = p E / (q + p E), which needs no exponential.  Where an a is so
// large that p or q may leave the range of their numbers, all are made from a.
INLINE void flip(const Network& net, int64_t unit, const Image& image, bool is_on) {
  const Eight* w = eights(net.weights + unit * net.width);
  const Eight* e = eights(net.exponentials + unit * net.width);
  Eight *p = eights(is_on ? image.q : image.p), *q = eights(is_on ? image.p : image.q);
  const float sign = is_on ? -1.0f : 1.0f;
  EightBits is_far{};
  for (int64_t i = 0; i < net.width / LANES; ++i) {
    const Eight a = eights(image.a)[i] + sign * w[i], product = p[i] * e[i];
    const Eight inverse = 1.0f / (q[i] + product);
    eights(image.a)[i] = a;
    p[i] = product * inverse;
    q[i] = q[i] * inverse;
    is_far |= from_bits(bits_of(a) & 0x7fffffff) > FAR;
  }
  int32_t any = 0;
  for (int lane = 0; lane < LANES; ++lane) any |= is_far[lane];
  if (any) {
    refresh<false>(net, image);
    return;
  }
  for (const auto [d, exponential] : net.beyond[unit]) {
    image.p[d] = 1 / (1 + std::exp(-image.a[d]));
    image.q[d] = 1 / (1 + std::exp(image.a[d]));
  }
}

// a = W h + c.
INLINE void activate(const Network& net, const uint8_t* hidden, const Image& image) {
  std::memcpy(image.a, net.bias, sizeof(float) * size_t(net.width));
  for (int64_t j = 0; j < net.num_hidden; ++j) {
    if (!hidden[j]) continue;
    const Eight* w = eights(net.weights + j * net.width);
    for (int64_t i = 0; i < net.width / LANES; ++i) eights(image.a)[i] += w[i];
  }
}

struct Work {
  Network net;
  Key key;
  int64_t num_sweeps;
  const float* drive;
  uint8_t* hidden;
  float *before, *after;  // Σ softplus(a) of each image
};

// A word for each unit.
INLINE void random_words(Key key, uint32_t image, uint32_t sweep, int64_t count, uint32_t* out) {
  for (int64_t i = 0; i < count; i += 4) {
    const uint32_t counter[4] = {uint32_t(i), image, sweep, 0};
    philox(counter, key, out + i);
  }
}

template <int COUNT>
INLINE void draw_group(const Work& work, int64_t first, const Image images[], uint32_t* words) {
  const Network& net = work.net;
  const int64_t num_words = (net.num_hidden + 3) / 4 * 4;
  uint8_t* hidden[COUNT];
  double change[COUNT];
  for (int n = 0; n < COUNT; ++n) {
    hidden[n] = work.hidden + (first + n) * net.num_hidden;
    activate(net, hidden[n], images[n]);
    work.before[first + n] = float(refresh<true>(net, images[n]));
  }
  for (int64_t sweep = 0; sweep < work.num_sweeps; ++sweep) {
    for (int n = 0; n < COUNT; ++n) {
      if (sweep > 0) refresh<false>(net, images[n]);
      random_words(work.key, uint32_t(first + n), uint32_t(sweep), net.num_hidden, words + n * num_words);
    }
    for (int64_t unit = 0; unit < net.num_hidden; ++unit) {
      changes<COUNT>(net, unit, images, hidden, change);
      for (int n = 0; n < COUNT; ++n) {
        const double odds = double(work.drive[(first + n) * net.num_hidden + unit]) - change[n];
        const double uniform = (double(words[n * num_words + unit]) + 0.5) * 0x1p-32;
        const bool is_on = hidden[n][unit], will_be_on = uniform * (1 + std::exp(-odds)) < 1;
        if (will_be_on == is_on) continue;
        flip(net, unit, images[n], is_on);
        hidden[n][unit] = will_be_on;
      }
    }
  }
  for (int n = 0; n < COUNT; ++n) {
    activate(net, hidden[n], images[n]);
    work.after[first + n] = float(refresh<true>(net, images[n]));
  }
}

// Memory for numbers that Eight can be read from.
struct Room {
  std::unique_ptr<float[]> memory;
  float* begin;
  explicit Room(int64_t count) : memory(new float[size_t(count) + 16]()) {
    begin = memory.get() + (64 - reinterpret_cast<uintptr_t>(memory.get()) % 64) % 64 / sizeof(float);
  }
};

FOR_EACH_MACHINE
void draw_images(const Work& work, int64_t first, int64_t last) {
  const int64_t width = work.net.width;
  Room room(3 * IMAGES * width);
  std::vector<uint32_t> words(size_t(IMAGES * (work.net.num_hidden + 4)));
  Image images[IMAGES];
  for (int n = 0; n < IMAGES; ++n) {
    float* begin = room.begin + 3 * n * width;
    images[n] = {begin, begin + width, begin + 2 * width};
  }
  for (; first + IMAGES <= last; first += IMAGES)
    draw_group<IMAGES>(work, first, images, words.data());
  for (; first < last; ++first) draw_group<1>(work, first, images, words.data());
}

// Tables of a network: rows by hidden unit, padded.
struct Tables {
  Room weights, exponentials, sums, bias;
  std::vector<std::vector<Beyond>> beyond;
  int64_t num_visible, num_hidden, width;
  Tables(int64_t visible, int64_t hidden)
      : weights(hidden * padded(visible)), exponentials(hidden * padded(visible)), sums(hidden),
        bias(padded(visible)), beyond(size_t(hidden)), num_visible(visible), num_hidden(hidden),
        width(padded(visible)) {}
  static int64_t padded(int64_t count) { return (count + PAD - 1) / PAD * PAD; }
  Network network() const {
    return {num_hidden, width, width - num_visible, weights.begin, exponentials.begin,
            sums.begin, beyond.data(), bias.begin};
  }
};

FOR_EACH_MACHINE
void fill(Tables& tables, const float* weights, const float* bias) {
  const int64_t width = tables.width, num_hidden = tables.num_hidden;
  std::copy(bias, bias + tables.num_visible, tables.bias.begin);
  for (int64_t d = 0; d < tables.num_visible; ++d)
    for (int64_t j = 0; j < num_hidden; ++j)
      tables.weights.begin[j * width + d] = weights[d * num_hidden + j];
  for (int64_t j = 0; j < num_hidden; ++j) {
    const float* row = tables.weights.begin + j * width;
    float* exponentials = tables.exponentials.begin + j * width;
    double sum = 0;
    for (int64_t i = 0; i < width / LANES; ++i) eights(exponentials)[i] = exponential(eights(row)[i]);
    for (int64_t d = 0; d < width; ++d) {
      if (std::fabs(row[d]) <= REACH) {
        sum += double(row[d]);
        continue;
      }
      tables.beyond[size_t(j)].push_back({int32_t(d), std::exp(double(row[d]))});
      exponentials[d] = 1;
    }
    tables.sums.begin[j] = float(sum);
  }
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
