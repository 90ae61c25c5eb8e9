// First values, drawn on the owner of each range.
#pragma once

#include "chunks/chunk_store.hpp"
#include "collectives/ranks.hpp"
#include "training/registry.hpp"

namespace gemini {

// gemini_param_init_*: checks and keeps the rule.
void set_initialiser(Parameter& parameter, Initialiser initialiser);

// fill and function initialisers; local. Throws GEMINI_ERR_CALLBACK if a function returns nonzero.
void initialise_own_ranges(Registry& registry, ChunkStore& store);
// data initialisers, from rank 0; every rank calls.
void initialise_from_data(Ranks& ranks, Registry& registry, ChunkStore& store);

}  // namespace gemini
