// An iteration in two halves, for users who are spread over devices.  Included by factorization.cpp.
//
// A device has some of the users with their ratings, and all items.  In the first half it moves its
// users, and gives what its ratings add to the gradients of all items; these are added up over the
// devices, and in the second half each device moves its own items.  Between the two JAX communicates.
//
// How many of a batch's draws fall to each device is drawn with a key that all devices share, by the
// same binomials as within a device: the batch has the law of one that is drawn from all ratings.
//
// Whether all numbers stayed finite is known after both halves.  Where a bound cannot rule it out, the
// users are copied first, and `restore` puts them back.

namespace {

// Of the batch, how many draws are from the ratings of a device.
int64_t draws_of_device(Key shared, const int32_t* counts, int64_t num_devices, int64_t device,
                        int64_t batch_size) {
  Uniforms uniforms{shared};
  int64_t draws = batch_size, ratings = 0;
  for (int64_t n = 0; n < num_devices; ++n) ratings += counts[n];
  for (int64_t n = 0;; ++n) {
    const int64_t here = binomial(uniforms, draws, double(counts[n]) / double(ratings));
    if (n == device) return here;
    draws -= here, ratings -= counts[n];
  }
}

// The numbers of a step that the two halves share.
void set_numbers(Checks& checks, Step& s, int64_t rank, int64_t num_threads, double alpha,
                 double drift_scale, double cap, double largest_step, bool has_clip) {
  s.rank = rank, s.num_threads = num_threads, s.alpha = alpha, s.drift_scale = drift_scale;
  s.cap = cap, s.largest_step = largest_step, s.has_clip = has_clip;
  checks.require(s.row > 0 && s.row % LINE == 0 && s.row <= LINE * MAX_LINES,
                 "rows must have a multiple of 16 floats, at most 512");
  checks.within("rank", rank, 1, s.row);
  checks.within("num_threads", num_threads, 1, 1 << 16);
}

const float* or_null(const F32& array) {
  return array.element_count() ? array.typed_data() : nullptr;
}

void tell(const Report& report, F32Out& told) {
  const float numbers[4] = {report.jump, report.taming, report.wrong, report.largest};
  std::memcpy(told->typed_data(), numbers, sizeof numbers);
}

void add_up(const float* parts, int64_t size, float* sum) {
  static_assert(SEGMENTS == 4, "the parts are written out");
  for (int64_t n = 0; n < size; ++n)
    sum[n] = parts[n] + parts[n + size] + parts[n + 2 * size] + parts[n + 3 * size];
}

// `keys`: two words that all devices share, and two of this one.
ffi::Error move_users(F32 users, F32 items, ffi::Buffer<ffi::U32> keys, ffi::Buffer<ffi::S32> device,
                      ffi::Buffer<ffi::S32> counts, F32 step_size, F32 largest, ffi::AnyBuffer rated,
                      ffi::Buffer<ffi::U8> codes, F32 levels, ffi::Buffer<ffi::S32> offsets,
                      F32 user_steps, F32 user_noises, F32 quantiles, F32Out new_users,
                      F32Out item_gradients, F32Out curvatures, F32Out told, F32Out backup,
                      F32Out gradients, F32Out norms, int64_t batch_size, int64_t rank,
                      int64_t num_threads, int64_t user_frozen, double alpha, double precision,
                      double drift_scale, double cap, double largest_step, bool has_clip) {
  Checks checks;
  checks.axes("users", users, 2, 2);
  checks.axes("items", items, 2, 2);
  if (!checks) return checks.error();
  Step s{};
  s.moves_items = false;
  s.num_users = users.dimensions()[0], s.row = users.dimensions()[1];
  s.num_items = items.dimensions()[0];
  set_numbers(checks, s, rank, num_threads, alpha, drift_scale, cap, largest_step, has_clip);
  const int64_t num_devices = int64_t(counts.element_count()), size = s.num_items * s.row;
  checks.within("the number of users", s.num_users, 1, std::numeric_limits<int32_t>::max());
  checks.within("the number of devices", num_devices, 1, std::numeric_limits<int32_t>::max());
  checks.size("items", items, size);
  checks.size("keys", keys, 4);
  checks.size("device", device, 1);
  checks.size("step_size", step_size, 1);
  checks.size("largest", largest, 1);
  checks.size("codes", codes, int64_t(rated.element_count()));
  checks.size("levels", levels, 256);
  checks.size("offsets", offsets, s.num_users + 1);
  checks.size("user_steps", user_steps, s.num_users, 0);
  checks.size("user_noises", user_noises, s.num_users, 0);
  checks.size("quantiles", quantiles, 2 * CELLS);
  checks.size("new users", *new_users, s.num_users * s.row);
  checks.size("gradients of items", *item_gradients, size);
  checks.size("curvatures", *curvatures, has_clip ? s.num_items : 0);
  checks.size("report", *told, 4);
  checks.size("backup", *backup, s.num_users * s.row);
  checks.size("gradients", *gradients, SEGMENTS * size);
  checks.size("norms", *norms, (SEGMENTS + 1) * s.num_items);
  checks.require(rated.element_type() == ffi::U32 || rated.element_type() == ffi::U16,
                 "rated must be uint16 or uint32");
  if (!checks) return checks.error();
  const int64_t number = device.typed_data()[0];
  checks.within("device", number, 0, num_devices - 1);
  if (!checks) return checks.error();
  int64_t all_ratings = 0;
  for (int64_t n = 0; n < num_devices; ++n) {
    checks.within("counts", counts.typed_data()[n], 0, std::numeric_limits<int32_t>::max());
    all_ratings += counts.typed_data()[n];
  }
  s.num_ratings = counts.typed_data()[number];
  checks.within("counts", s.num_ratings, 0, int64_t(rated.element_count()));
  checks.within("batch_size", batch_size, 1, all_ratings);
  if (checks) checks.offsets("offsets", offsets.typed_data(), s.num_users, s.num_ratings);
  if (!checks) return checks.error();
  Key shared;
  std::memcpy(shared.words, keys.typed_data(), 8), std::memcpy(s.key.words, keys.typed_data() + 2, 8);
  s.batch_size = draws_of_device(shared, counts.typed_data(), num_devices, number, batch_size);
  // Such that what is drawn counts as in a batch of all ratings.
  s.precision = precision * double(all_ratings) / double(batch_size) * double(s.batch_size) /
                double(std::max<int64_t>(s.num_ratings, 1));
  s.rated = rated.untyped_data(), s.is_wide = rated.element_type() == ffi::U32;
  s.codes = codes.typed_data(), s.levels = levels.typed_data(), s.offsets = offsets.typed_data();
  s.user_steps = or_null(user_steps), s.user_noises = or_null(user_noises);
  s.quantiles = quantiles.typed_data(), s.user_frozen = user_frozen;
  s.step_size = step_size.typed_data()[0], s.largest = largest.typed_data()[0];
  s.gradients = gradients->typed_data();
  s.partner_norms = norms->typed_data(), s.clips = s.partner_norms + s.num_items;
  s.users = new_users->typed_data(), s.items = items.typed_data();  // these are only read
  if (s.users != users.typed_data()) std::memcpy(s.users, users.typed_data(), users.size_bytes());
  Step whole = s;  // as items are moved by the ratings of all devices
  whole.num_ratings = all_ratings, whole.precision = precision;
  if (!is_surely_finite(whole)) std::memcpy(backup->typed_data(), s.users, users.size_bytes());
  const Report report = step_of_this_machine(s);
  checks.require(!report.is_outside, "rated names an item that is not there");
  if (!checks) return checks.error();
  add_up(s.gradients, size, item_gradients->typed_data());
  if (has_clip) add_up(s.clips, s.num_items, curvatures->typed_data());
  tell(report, told);
  return ffi::Error::Success();
}

// Move items by the gradients and curvatures of all ratings.
ffi::Error move_own_items(F32 items, F32 item_gradients, F32 curvatures, ffi::Buffer<ffi::U32> keys,
                          F32 step_size, F32 item_steps, F32 item_noises, F32 quantiles,
                          F32Out new_items, F32Out told, int64_t rank, int64_t num_threads,
                          int64_t item_frozen, double alpha, double drift_scale, double cap,
                          double largest_step, bool has_clip) {
  Checks checks;
  checks.axes("items", items, 2, 2);
  if (!checks) return checks.error();
  Step s{};
  s.moves_users = false, s.num_buffers = 1;
  s.num_items = items.dimensions()[0], s.row = items.dimensions()[1];
  set_numbers(checks, s, rank, num_threads, alpha, drift_scale, cap, largest_step, has_clip);
  checks.within("the number of items", s.num_items, 1, std::numeric_limits<int32_t>::max());
  checks.size("gradients of items", item_gradients, s.num_items * s.row);
  checks.size("curvatures", curvatures, has_clip ? s.num_items : 0);
  checks.size("keys", keys, 4);
  checks.size("step_size", step_size, 1);
  checks.size("item_steps", item_steps, s.num_items, 0);
  checks.size("item_noises", item_noises, s.num_items, 0);
  checks.size("quantiles", quantiles, 2 * CELLS);
  checks.size("new items", *new_items, s.num_items * s.row);
  checks.size("report", *told, 4);
  if (!checks) return checks.error();
  std::memcpy(s.key.words, keys.typed_data() + 2, 8);
  s.item_steps = or_null(item_steps), s.item_noises = or_null(item_noises);
  s.quantiles = quantiles.typed_data(), s.item_frozen = item_frozen;
  s.step_size = step_size.typed_data()[0];
  s.gradients = item_gradients.typed_data(), s.clips = curvatures.typed_data();  // only read
  s.items = new_items->typed_data();
  if (s.items != items.typed_data()) std::memcpy(s.items, items.typed_data(), items.size_bytes());
  tell(step_of_this_machine(s), told);
  return ffi::Error::Success();
}

// Put the users back, if a number of the step is not finite on any device.
ffi::Error restore(F32 users, F32 backup, F32 told, F32Out kept) {
  Checks checks;
  const int64_t size = int64_t(users.element_count());
  checks.size("backup", backup, size);
  checks.size("report", told, 4);
  checks.size("users", *kept, size);
  if (!checks) return checks.error();
  const F32& from = told.typed_data()[2] > 0 ? backup : users;
  if (kept->typed_data() != from.typed_data())
    std::memcpy(kept->typed_data(), from.typed_data(), users.size_bytes());
  return ffi::Error::Success();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(levymc_factorization_users, move_users,
                              ffi::Ffi::Bind()
                                  .Arg<F32>()                    // users
                                  .Arg<F32>()                    // items
                                  .Arg<ffi::Buffer<ffi::U32>>()  // keys
                                  .Arg<ffi::Buffer<ffi::S32>>()  // device
                                  .Arg<ffi::Buffer<ffi::S32>>()  // counts
                                  .Arg<F32>()                    // step_size
                                  .Arg<F32>()                    // largest
                                  .Arg<ffi::AnyBuffer>()         // rated
                                  .Arg<ffi::Buffer<ffi::U8>>()   // codes
                                  .Arg<F32>()                    // levels
                                  .Arg<ffi::Buffer<ffi::S32>>()  // offsets
                                  .Arg<F32>()                    // user_steps
                                  .Arg<F32>()                    // user_noises
                                  .Arg<F32>()                    // quantiles
                                  .Ret<F32>()                    // users
                                  .Ret<F32>()                    // gradients of items
                                  .Ret<F32>()                    // curvatures
                                  .Ret<F32>()                    // report
                                  .Ret<F32>()                    // backup
                                  .Ret<F32>()                    // scratch: gradients
                                  .Ret<F32>()                    // scratch: norms, clips
                                  .Attr<int64_t>("batch_size")
                                  .Attr<int64_t>("rank")
                                  .Attr<int64_t>("num_threads")
                                  .Attr<int64_t>("user_frozen")
                                  .Attr<double>("alpha")
                                  .Attr<double>("precision")
                                  .Attr<double>("drift_scale")
                                  .Attr<double>("cap")
                                  .Attr<double>("largest_step")
                                  .Attr<bool>("has_clip"));

XLA_FFI_DEFINE_HANDLER_SYMBOL(levymc_factorization_items, move_own_items,
                              ffi::Ffi::Bind()
                                  .Arg<F32>()                    // items
                                  .Arg<F32>()                    // gradients of items
                                  .Arg<F32>()                    // curvatures
                                  .Arg<ffi::Buffer<ffi::U32>>()  // keys
                                  .Arg<F32>()                    // step_size
                                  .Arg<F32>()                    // item_steps
                                  .Arg<F32>()                    // item_noises
                                  .Arg<F32>()                    // quantiles
                                  .Ret<F32>()                    // items
                                  .Ret<F32>()                    // report
                                  .Attr<int64_t>("rank")
                                  .Attr<int64_t>("num_threads")
                                  .Attr<int64_t>("item_frozen")
                                  .Attr<double>("alpha")
                                  .Attr<double>("drift_scale")
                                  .Attr<double>("cap")
                                  .Attr<double>("largest_step")
                                  .Attr<bool>("has_clip"));

XLA_FFI_DEFINE_HANDLER_SYMBOL(levymc_factorization_restore, restore,
                              ffi::Ffi::Bind()
                                  .Arg<F32>()    // users
                                  .Arg<F32>()    // backup
                                  .Arg<F32>()    // report
                                  .Ret<F32>());  // users
