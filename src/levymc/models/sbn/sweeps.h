// The kernels of belief.cpp, whose top says what they do and how.  Without a guard: it includes this file
// into a namespace for each instruction set, and defines LEVYMC_LANES, the floats of a register.

constexpr int LANES = LEVYMC_LANES;
typedef float Many __attribute__((vector_size(4 * LEVYMC_LANES), may_alias));
typedef int32_t ManyBits __attribute__((vector_size(4 * LEVYMC_LANES), may_alias));
typedef float Four __attribute__((vector_size(16), may_alias));
typedef int32_t FourBits __attribute__((vector_size(16), may_alias));

INLINE ManyBits bits_of(Many x) { return reinterpret_cast<ManyBits&>(x); }
INLINE Many from_bits(ManyBits x) { return reinterpret_cast<Many&>(x); }
INLINE Many all(float x) { return Many{} + x; }
INLINE Many choose(ManyBits mask, Many yes, Many no) {
  return from_bits((mask & bits_of(yes)) | (~mask & bits_of(no)));
}

// exp of a number in [-87, 87], to 2e-7: x = n log 2 + r, and a polynomial in |r| ≤ log(2)/2.
INLINE Many exponential(Many x) {
  const Many magic = all(12582912.0f);  // 1.5 · 2^23: adding it rounds
  const Many shifted = x * 1.44269504f + magic;
  const Many n = shifted - magic;
  const Many r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Many y = all(1.9875691500e-4f);
  y = y * r + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * (r * r) + r + 1.0f;
  return from_bits(bits_of(y) + ((bits_of(shifted) - bits_of(magic)) << 23));
}

// exp(-|a|), or exp(-87) where that is larger.
INLINE Many exponential_of_size(Many a) {
  const Many size = from_bits(bits_of(a) & 0x7fffffff);
  return exponential(-choose(size > LARGEST_EXP, all(LARGEST_EXP), size));
}

// A product of positive numbers as mantissas in [1, 2) and the sum of their exponents.  Without a
// constructor, as the compiler makes those for the wrong instruction set.
struct Product {
  Many mantissa;
  ManyBits exponent;
  INLINE void normalise() {
    exponent += (bits_of(mantissa) >> 23) - 127;
    mantissa = from_bits((bits_of(mantissa) & 0x007fffff) | 0x3f800000);
  }
  INLINE double log() const {  // of a normalised one
    Four m = Four{} + 1.0f, factors[LANES / 4];
    FourBits n{}, powers[LANES / 4];
    std::memcpy(factors, &mantissa, sizeof mantissa);
    std::memcpy(powers, &exponent, sizeof exponent);
    for (int i = 0; i < LANES / 4; ++i) m *= factors[i], n += powers[i];
    return std::log(double((m[0] * m[1]) * (m[2] * m[3]))) + LOG_2 * (n[0] + n[1] + n[2] + n[3]);
  }
};

INLINE const Many* vectors(const float* x) { return reinterpret_cast<const Many*>(x); }
INLINE Many* vectors(float* x) { return reinterpret_cast<Many*>(x); }

INLINE Product empty_product() { return {all(1.0f), ManyBits{}}; }

// p and q of a; and Σ softplus(a) if asked for.
template <bool WITH_SUM>
INLINE double refresh(const Network& net, const Image& image) {
  Product product = empty_product();
  Many linear{};
  int64_t count = 0;
  for (int64_t i = 0; i < net.width / LANES; ++i) {
    const Many a = vectors(image.a)[i], e = exponential_of_size(a);
    const Many large = 1.0f / (1.0f + e), small = e * large;
    const ManyBits is_positive = a > 0.0f;
    vectors(image.p)[i] = choose(is_positive, large, small);
    vectors(image.q)[i] = choose(is_positive, small, large);
    if (!WITH_SUM) continue;
    linear += choose(is_positive, a, Many{});
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
INLINE void log_products(const Network& net, int64_t unit, const Many* const x[], const Many* const y[],
                         double out[]) {
  const Many* e = vectors(net.exponentials + unit * net.width);
  const int64_t num_pairs = net.width / LANES / 2, unseen = net.pairs[unit];
  Product product[COUNT];
  for (int n = 0; n < COUNT; ++n) product[n] = empty_product();
  for (int64_t first = 0; first < num_pairs; first += unseen) {
    const int64_t last = std::min(first + unseen, num_pairs);
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
  const Many *x[COUNT], *y[COUNT];
  for (int n = 0; n < COUNT; ++n) {
    const bool is_on = hidden[n][unit];
    x[n] = vectors(is_on ? images[n].p : images[n].q);
    y[n] = vectors(is_on ? images[n].q : images[n].p);
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
  const Many* w = vectors(net.weights + unit * net.width);
  const Many* e = vectors(net.exponentials + unit * net.width);
  Many *p = vectors(is_on ? image.q : image.p), *q = vectors(is_on ? image.p : image.q);
  const float sign = is_on ? -1.0f : 1.0f;
  ManyBits is_far{};
  for (int64_t i = 0; i < net.width / LANES; ++i) {
    const Many a = vectors(image.a)[i] + sign * w[i], product = p[i] * e[i];
    const Many inverse = 1.0f / (q[i] + product);
    vectors(image.a)[i] = a;
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
    const Many* w = vectors(net.weights + j * net.width);
    for (int64_t i = 0; i < net.width / LANES; ++i) vectors(image.a)[i] += w[i];
  }
}

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

inline void draw_images(const Work& work, int64_t first, int64_t last) {
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

inline void fill(Tables& tables, const float* weights, const float* bias) {
  const int64_t width = tables.width, num_hidden = tables.num_hidden;
  std::copy(bias, bias + tables.num_visible, tables.bias.begin);
  for (int64_t d = 0; d < tables.num_visible; ++d)
    for (int64_t j = 0; j < num_hidden; ++j)
      tables.weights.begin[j * width + d] = weights[d * num_hidden + j];
  for (int64_t j = 0; j < num_hidden; ++j) {
    const float* row = tables.weights.begin + j * width;
    float* exponentials = tables.exponentials.begin + j * width;
    double sum = 0;
    float largest = RANGE / (2 * MOST_PAIRS);
    for (int64_t i = 0; i < width / LANES; ++i) vectors(exponentials)[i] = exponential(vectors(row)[i]);
    for (int64_t d = 0; d < width; ++d) {
      if (std::fabs(row[d]) <= REACH) {
        sum += double(row[d]);
        largest = std::max(largest, std::fabs(row[d]));
        continue;
      }
      tables.beyond[size_t(j)].push_back({int32_t(d), std::exp(double(row[d]))});
      exponentials[d] = 1;
    }
    tables.sums.begin[j] = float(sum);
    tables.pairs[size_t(j)] = int32_t(RANGE / (2 * largest));
  }
}
