"""A catalog as bytes and back: JSON with sorted keys, so that equal catalogs are equal bytes."""

import hashlib
from dataclasses import replace

import msgspec

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.tables.sections.sources import DEFAULT_TRAITS

_ENCODER = msgspec.json.Encoder(order="sorted")
_DECODER = msgspec.json.Decoder(Catalog)


def encode_catalog(catalog: Catalog) -> bytes:
    """The catalog in its one canonical form, digest included."""
    return _ENCODER.encode(catalog)


def decode_catalog(encoded: bytes) -> Catalog:
    """The catalog of ``encode_catalog``; ValueError where the bytes are none or do not match their digest.

    The digest is that of the bytes as they were written: a later version, whose catalogs have more
    fields, still reads them.
    """
    try:
        catalog = _DECODER.decode(encoded)
    except msgspec.DecodeError as error:
        raise ValueError(f"not a catalog: {error}") from None
    without_digest = encoded.replace(f'"digest":"{catalog.digest}"'.encode(), b'"digest":""', 1)
    if catalog.digest != (found := hashlib.sha256(without_digest).hexdigest()):
        raise ValueError(
            f"a catalog damaged since it was written: its digest is {found}, not {catalog.digest}"
        )
    return catalog if catalog.sources else replace(catalog, sources=DEFAULT_TRAITS)


def digest(catalog: Catalog) -> str:
    """sha256, hexadecimal, of the canonical form with an empty digest."""
    return hashlib.sha256(encode_catalog(replace(catalog, digest=""))).hexdigest()


def with_digest(catalog: Catalog) -> Catalog:
    return replace(catalog, digest=digest(catalog))
