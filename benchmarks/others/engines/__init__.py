"""The engines of the contests, one adapter a module; `benchmarks.others.engine.ENGINES` lists them."""
