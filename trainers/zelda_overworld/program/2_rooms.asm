; --- a new game --------------------------------------------------------------------------------------------
start:
  JSR wipe
  JSR lights
  LDX #19
  LDA #0
nothing:
  STA equipment,x
  DEX
  BPL nothing
  STA gems
  STA kills
  STA bombs
  STA keys
  STA incave
  STA hurt
  STA sword
  LDA #8
  STA hp
  STA maxhp
  LDA #$11
  STA location
  LDA #120
  STA px
  LDA #168
  STA py

; --- a room is built, one row of metatiles per frame -------------------------------------------------------
enter:
  LDA #3
  STA mode
  LDX #0
  STX row
  STX alive
  STX itemtype
  STX sword
  LDA #0
forget:
  STA tiles,x
  STA tiles+256,x
  STA tiles+448,x
  INX
  BNE forget
  LDX #7
banish:
  STA etype,x
  DEX
  BPL banish
  JMP hide

build:
  LDA row
  LSR
  LSR
  TAX
  CLC
  ADC #>tiles
  STA ptr+1
  TXA
  ADC #$21
  STA ppuhi
  LDA row
  AND #3
  LSR
  ROR
  ROR
  STA ptr
  STA ppulo
  LDA #0
  STA col
column:
  JSR metatile
  PHA
  LDA col
  ASL
  TAY
  TAX
  PLA
  STA (ptr),y
  STA line,x
  STA line+32,x
  INY
  STA (ptr),y
  STA line+1,x
  STA line+33,x
  PHA
  TYA
  CLC
  ADC #31
  TAY
  PLA
  STA (ptr),y
  INY
  STA (ptr),y
  INC col
  LDA col
  CMP #16
  BNE column
  INC pending
  INC row
  LDA row
  CMP #11
  BNE building
  LDA #2
  STA mode
  JMP populate
building:
  RTS

; The code of the metatile at row, col: rock is $80 to $87, ground $10 to $3F, stairs $0E.
metatile:
  LDA row
  BEQ north
  CMP #10
  BEQ south
  LDA col
  BEQ west
  CMP #15
  BEQ east
  LDX col
  LDA row
  CMP #5
  BEQ ground
  CPX #7
  BEQ ground
  CPX #8
  BEQ ground
  CMP #8
  BNE not_alley
  CPX #4
  BCC not_alley
  CPX #8
  BCC ground
not_alley:
  CMP #2
  BNE maybe
  CPX #11
  BNE maybe
  LDA incave
  BNE ground
  LDA location
  AND #1
  BEQ ground
  LDA #$0E
  RTS
maybe:
  JSR hash
  AND #$1C
  BNE ground
rock:
  JSR hash
  AND #7
  ORA #$80
  RTS
ground:
  LDA incave
  BNE cave_ground
  JSR hash
  AND #$1F
  CLC
  ADC #$10
  RTS
cave_ground:
  JSR hash
  AND #$0F
  ORA #$30
  RTS

north:
  LDA incave
  BNE rock
  LDA location
  CMP #$10
  BCC rock
  BCS gate
south:
  LDA incave
  BNE gate
  LDA location
  CMP #$30
  BCS rock
gate:
  LDX col
  CPX #7
  BEQ ground
  CPX #8
  BEQ ground
  BNE rock
west:
  LDA location
  AND #3
  BEQ rock
  BNE side
east:
  LDA location
  AND #3
  CMP #3
  BEQ rock
side:
  LDA incave
  BNE rock
  LDA row
  CMP #5
  BEQ ground
  BNE rock

hash:
  LDA row
  ASL
  ASL
  ASL
  ASL
  ORA col
  TAX
  LDA noise,x
  CLC
  ADC location
  EOR incave
  TAX
  LDA noise,x
  RTS

; Who and what is in the room.
populate:
  LDX location
  LDA noise,x
  AND #3
  CLC
  ADC #5
  LDY incave
  BEQ outside
  LDA #2
outside:
  STA alive
  TAX
  DEX
settle:
  TXA
  AND #3
  STA edir,x
  CLC
  ADC #1
  STA etype,x
  LSR
  LSR
  CLC
  ADC #1
  STA ehp,x
  LDA places_x,x
  STA ex,x
  LDA places_y,x
  STA ey,x
  LDA #20
  STA etimer,x
  DEX
  BPL settle
  LDA location
  AND #3
  STA index
  LDA incave
  BNE cave_thing
  LDA location
  LSR
  LSR
  CLC
  ADC index
  TAX
  LDA #64
  STA itemx
  LDA #192
  STA itemy
  BNE thing
cave_thing:
  LDA index
  CLC
  ADC #16
  TAX
  LDA #120
  STA itemx
  LDA #112
  STA itemy
thing:
  LDA equipment,x
  BNE taken
  INX
  STX itemtype
taken:
  RTS
