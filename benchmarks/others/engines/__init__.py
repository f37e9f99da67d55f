"""Which engines are compared? One adapter a module; `benchmarks.others.engine.ENGINES` lists them."""
