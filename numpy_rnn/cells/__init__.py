"""The mathematics: one file a cell, ``forward`` directly above ``backward``, over one window, layer and direction."""
