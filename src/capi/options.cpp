// Options before there is a context.
#include "capi/guard.hpp"

using namespace gemini;

gemini_status_t gemini_options_create(gemini_options_t* opts) {
  return guarded("gemini_options_create", [&] {
    require_argument(opts, "opts");
    *opts = nullptr;
    *opts = new gemini_options_s;
  });
}

gemini_status_t gemini_options_set(gemini_options_t opts, const char* key, const char* value) {
  return guarded("gemini_options_set", [&] {
    require_argument(opts, "opts");
    require_argument(key, "key");
    require_argument(value, "value");
    opts->options.set(key, value);
  });
}

gemini_status_t gemini_options_load(gemini_options_t opts, const char* path) {
  return guarded("gemini_options_load", [&] {
    require_argument(opts, "opts");
    require_argument(path, "path");
    opts->options.load(path);
  });
}

gemini_status_t gemini_options_get(gemini_options_t opts, const char* key, char* value, int64_t capacity) {
  return guarded("gemini_options_get", [&] {
    require_argument(opts, "opts");
    require_argument(key, "key");
    copy_text(opts->options.text(key), value, capacity);
  });
}

gemini_status_t gemini_options_destroy(gemini_options_t* opts) {
  return guarded("gemini_options_destroy", [&] {
    if (opts != nullptr) delete std::exchange(*opts, nullptr);
  });
}
