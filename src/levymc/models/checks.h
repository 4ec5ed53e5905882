// What a kernel is given is looked at before it is read: an error that JAX raises, not a crash.
//
// The Python code gives nothing else than what passes; but a stored program can be called with other
// arrays, and a mistake there must not read outside of them.

#ifndef LEVYMC_CHECKS
#define LEVYMC_CHECKS

#include <cstdint>
#include <string>

#include "xla/ffi/api/ffi.h"

// The first fault, if there is one.
struct Checks {
  std::string fault;

  // Whether all is well so far: what reads an array must ask before.
  explicit operator bool() const { return fault.empty(); }

  void require(bool holds, const std::string& what) {
    if (!holds && fault.empty()) fault = what;
  }

  // An array of a known number of axes.
  template <class Array>
  void axes(const char* name, const Array& array, size_t least, size_t most) {
    const size_t count = array.dimensions().size();
    require(least <= count && count <= most,
            std::string(name) + " has " + std::to_string(count) + " axes");
  }

  // An array of `wanted` entries, or of `other` ones.
  template <class Array>
  void size(const char* name, const Array& array, int64_t wanted, int64_t other = -1) {
    const int64_t count = int64_t(array.element_count());
    require(count == wanted || count == other, std::string(name) + " has " + std::to_string(count) +
                                                   " entries, expected " + std::to_string(wanted));
  }

  void within(const char* name, int64_t value, int64_t least, int64_t most) {
    require(least <= value && value <= most,
            std::string(name) + " is " + std::to_string(value) + ", expected " +
                std::to_string(least) + " to " + std::to_string(most));
  }

  // Where the ratings of each row begin: from 0, never backwards, up to their number.
  void offsets(const char* name, const int32_t* values, int64_t num_rows, int64_t num_ratings) {
    bool is_sorted = values[0] == 0 && values[num_rows] == num_ratings;
    for (int64_t row = 0; row < num_rows; ++row) is_sorted &= values[row] <= values[row + 1];
    require(is_sorted, std::string(name) + " do not rise from 0 to " + std::to_string(num_ratings));
  }

  // Numbers of rows of another array.
  void indices(const char* name, const uint32_t* values, int64_t count, int64_t num_rows) {
    uint32_t largest = 0;
    for (int64_t n = 0; n < count; ++n) largest = values[n] > largest ? values[n] : largest;
    require(count == 0 || int64_t(largest) < num_rows,
            std::string(name) + " name row " + std::to_string(largest) + " of " +
                std::to_string(num_rows));
  }

  xla::ffi::Error error() const {
    return xla::ffi::Error::InvalidArgument("levymc's kernel was given what it cannot read: " +
                                            fault + ".");
  }
};

#endif
