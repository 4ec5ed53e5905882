// Philox 4×32 with ten rounds (Salmon et al. 2011): four random words for each counter.

#ifndef LEVYMC_PHILOX
#define LEVYMC_PHILOX

#include <cstdint>

struct Key {
  uint32_t words[2];
};

inline __attribute__((always_inline)) void philox(const uint32_t counter[4], Key key,
                                                  uint32_t out[4]) {
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  uint32_t k0 = key.words[0], k1 = key.words[1];
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c0, p1 = uint64_t{0xCD9E8D57} * c2;
    c0 = uint32_t(p1 >> 32) ^ c1 ^ k0;
    c1 = uint32_t(p1);
    c2 = uint32_t(p0 >> 32) ^ c3 ^ k1;
    c3 = uint32_t(p0);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

#endif
