"""What lives in the core: sources, devices, holds, resets and jobs. No code is classified or counted here."""
